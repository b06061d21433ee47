"""Compiled functions and graphs: their state, reports, profiles and export."""
