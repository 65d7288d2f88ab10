"""Material for the benchmarks of our own BabyAI levels: near misses, and a reward judged by episode."""
