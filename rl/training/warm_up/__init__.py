"""Supervised fine-tuning on ideas, before or in place of reinforcement learning.

config        what is asked for, and what came of it
ideas         ideas for each help state, from an ideator, executed if wished; kept in a file
shortening    an idea in the fewest words that say it
examples      ideas as tokens, and which help states are held out
training      the loss on answers, AdamW, whole weights or adapters (torch)
sampling      what the model answers on the held-out states
running       all of it, from help states to a model's folder
"""
