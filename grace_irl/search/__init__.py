"""Search algorithms: they choose the next request for a program, and rank the programs found so far."""
