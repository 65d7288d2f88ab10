"""Screens of user interfaces: their XML, parsed, counted, drawn and put in other words."""
