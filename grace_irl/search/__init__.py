"""Search algorithms. They request programs from a proposer and rank the programs found so far."""
