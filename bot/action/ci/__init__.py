"""What failed in a job of CI, from its log and its reports. Nothing here talks to GitHub."""
