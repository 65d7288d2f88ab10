"""Tasks without demonstrations: an environment, a score of episodes, and policies trained to judge reward programs."""
