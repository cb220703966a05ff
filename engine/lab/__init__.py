"""The lab: what a rule does to the text, by enumeration, on a trace, by counting; and the length policies in a race."""
