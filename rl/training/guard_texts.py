"""What an alarm means and what can be done about it, a clause each."""

from __future__ import annotations

ADVICE: dict[str, str] = {
    "not finite": "the update broke the weights, or is about to; go back to the last checkpoint "
    "with a lower learning rate, or clip gradients harder.",
    "entropy below": "the policy is nearly certain of each token, so that groups lose their "
    "variance; raise the temperature or beta, lower the learning rate, or stop here.",
    "entropy above": "the policy is nearly random; lower the learning rate.",
    "kl below": "the policy does not move; raise the learning rate.",
    "kl above": "the policy is far from its reference, and may have stopped writing sentences; "
    "raise beta or lower the learning rate.",
    "idea_tokens below": "answers are getting too short to say what to do; read some, and see "
    "whether short ones earn more than they should.",
    "idea_tokens above": "answers are getting long; read some, and lower the limit of tokens.",
    "cut_rate below": "hardly an answer reaches the limit of tokens; it can be lowered.",
    "cut_rate above": "many answers reach the limit of tokens and are invalid for it; raise the "
    "limit, or stop answers at </rationale>.",
    "diversity below": "the answers to a help state are nearly all the same, so that there is "
    "nothing to compare; raise the temperature, or warm up on more various ideas.",
    "diversity above": "nearly all answers are different.",
    "distinct_operations below": "all help states get the same few ideas: the policy no longer "
    "reads them; raise the temperature or beta, or widen the tasks.",
    "distinct_operations above": "ideas name many operations.",
    "best_of_group below": "no answer improves anything: the help states may be exhausted or too "
    "hard, or ideas are not carried out; look at some rollouts.",
    "best_of_group above": "every group has an idea that improves; take harder help states.",
    "noop_rate below": "nearly all answers change the score.",
    "noop_rate above": "most answers change nothing: empty ideas are safe for the policy, as they "
    "are not punished; read some, and see what the implementer makes of them.",
    "invalid_rate below": "nearly all answers are well-formed.",
    "invalid_rate above": "most answers are no well-formed idea (or a copy of the prompt's "
    "example); warm up on ideas first, or look at what is wrong with them.",
    "zero_variance below": "nearly all groups differ in their rewards.",
    "zero_variance above": "in nearly all groups all rewards are the same, so that executions "
    "teach nothing; raise the temperature, let the curriculum retire help states, or add some.",
    "masked_rate below": "nearly all answers could be executed.",
    "masked_rate above": "answers could not be executed as the runtime broke; look at the last "
    "rollouts' details, then at sandbox, disk, memory and cluster.",
    "proxy_bias below": "audited ideas improve less often than the proxy reward predicts.",
    "proxy_bias above": "ideas that the proxy reward gives no chance improve all the same; train "
    "it anew on the results since, or raise the audit's share.",
}
