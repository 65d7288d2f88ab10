"""Methods of inverse RL. A method is one object that combines a search, an evaluator and prompts for a model."""
