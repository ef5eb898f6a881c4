"""Grading: graders run over stored responses, every call kept, none asked for twice."""
