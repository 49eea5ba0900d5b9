"""What runs are worth: measures of one run, and figures over tasks and seeds.

values          RunMeasures: all that is known of one run
finding         which runs a folder holds, and what each is a run of
one_run         a run's folder -> RunMeasures; all runs of a folder, `remembered` while they stay
categories      what an idea is about, by its words (`category_words`)

figures         the values that reports are made of, and one line on each
scoring         a run as one number: pluggable
resampling      means, rates and ratios with bootstrap intervals
contenders      runs -> figures of each contender, with `curves` and `ideas`
paired          two contenders on the same tasks and seeds

Everything is read from the runs' journals; docs/metrics.md defines each figure.
"""
