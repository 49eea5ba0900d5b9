"""What runs are worth: measures of one run, and figures over tasks and seeds.

values      RunMeasures: all that is known of one run
"""
