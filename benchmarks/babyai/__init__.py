"""Material for the benchmark of our own BabyAI levels: a reward judged by episode."""
