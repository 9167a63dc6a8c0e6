"""Passes of the graph reducer: each module proposes smaller programs of one kind; `bot.reduce.graph.reducer` drives them."""
