"""What does a transport protocol do to your application?

    import headofline as hol

    result = hol.compare("tcp", "sctp:streams=8", loss="1%")
    result                          # in a notebook: the report
    result.points.to_pandas()       # a row for each point: means with confidence intervals, quantiles
"""

from headofline.errors import HolError, UsageError
from headofline.experiment import Experiment
from headofline.laboratory import compare, run
from headofline.program import binary
from headofline.result import Result, open

__all__ = ["Experiment", "HolError", "Result", "UsageError", "binary", "compare", "open", "run"]
