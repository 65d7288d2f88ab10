"""Files of strangers: whatever they hold, a command gives data or one line, and does nothing that they ask for."""
