"""From a graph to the script that is run and posted."""
