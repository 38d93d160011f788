"""Adapters of `Learner` to the interfaces of scikit-learn (`sklearn`) and River (`river`)."""
