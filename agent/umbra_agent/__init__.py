"""The agent: one on each node. It and the controller share no code.

cli > runtime > loops > jobs > handlers > runner | controller > config, fence, devices, log
"""

__version__ = "0.1.0"
