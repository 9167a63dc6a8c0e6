"""Put on the path of the processes that a watched program starts; see `bot/inside/children.py`."""
