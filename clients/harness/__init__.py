"""What the two runs from outside share: installs, servers under test, sandboxes.

`clients/run` drives real clients, `conformance/run` the official suite.
Standard library only, so that both start before anything is installed.
"""
