"""What crafting and learning cost: against a bare scan, reading the parts and entity resolution, and with size.

Every measurement runs in a process of its own, and ratios are taken inside one run, so that a busy machine slows both
sides alike.
"""
