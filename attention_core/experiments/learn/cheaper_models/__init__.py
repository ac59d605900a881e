"""Four ideas that make a model cheaper: experts, drafts, rewards by a rule, distillation."""
