"""Other people's protocols over `Learner`: scikit-learn's (`estimator`) and River's (`river`)."""
