"""Why attention has several heads: what one map cannot hold, what a head costs, who does what."""
