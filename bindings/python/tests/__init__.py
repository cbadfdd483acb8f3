"""The tests of the kit, with a real hub."""
