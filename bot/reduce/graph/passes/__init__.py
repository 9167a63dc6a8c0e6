"""Passes of the graph reducer: each module proposes smaller programs of one sort; `bot.reduce.graph.reducer` drives them."""
