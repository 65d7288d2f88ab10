"""A reward recovered from demonstrations by grace-irl 0.1.0.

fitness:      -0.73697 on training data (calibrated, log pi constant)
train:        accuracy 0.9067, auc 0.9284, not separated, fitness -0.73697 (2002 positive, 2150 negative states)
held out:     none
monotonicity: 0.5864 (mean Kendall tau of reward against time along expert trajectories)
label:        all (which expert states are positive)
train data:   2 expert + 44 negative trajectories, 4152 states, digest a8fdd43031e9cc02
demos:        Hopper/demos
method:       grace, seed 0, proposer manual
program:      65e936864d273c2f (candidate 1)
lineage:      65e936864d273c2f (initialise)
calibration:  scale 3.05105, offset -0.48142
"""

import math

import numpy as np

# (weight, mean, deviation) parts of both densities for every quantity
EXPERT = {
    "vx": [(0.9, 2.85, 0.6), (0.1, 1.2, 0.6)],
    "z": [(0.6, 1.47, 0.1), (0.4, 1.2, 0.1)],
    "torso": [(0.85, -0.008, 0.03), (0.15, 0.06, 0.03)],
    "leg": [(0.75, -0.78, 0.14), (0.25, -0.2, 0.25)],
    "wt": [(0.8, -0.1, 0.5), (0.2, 0.4, 1.5)],
    "wth": [(0.6, 0.0, 0.5), (0.4, 0.0, 6.0)],
    "wl": [(0.5, 0.8, 1.5), (0.5, -1.0, 6.5)],
}
NEGATIVE = {
    "vx": [(0.5, 0.1, 0.7), (0.5, 2.4, 0.9)],
    "z": [(0.7, 1.22, 0.08), (0.3, 1.38, 0.13)],
    "torso": [(0.6, 0.045, 0.045), (0.4, -0.08, 0.08)],
    "leg": [(0.45, -0.08, 0.12), (0.55, -0.56, 0.2)],
    "wt": [(0.5, -0.1, 0.6), (0.5, -1.2, 1.7)],
    "wth": [(0.6, -0.3, 0.8), (0.4, -1.3, 2.2)],
    "wl": [(0.7, -0.3, 1.2), (0.3, -0.8, 2.2)],
}
WEIGHT = {"vx": 1.0, "z": 0.7, "torso": 0.8, "leg": 0.8, "wt": 0.5, "wth": 0.6, "wl": 0.5}


def density(x, parts):
    total = 1e-4
    for w, m, d in parts:
        total += w / d * math.exp(-0.5 * min(200.0, ((x - m) / d) ** 2))
    return total


class Reward:
    def __init__(self, extra_info=None):
        self.n = 0
        self.mean = 0.0
        self.text = ""

    def reward_fn(self, state):
        s = np.nan_to_num(np.asarray(state, float), nan=0.0, posinf=50.0, neginf=-50.0)
        q = {"vx": float(s[5]), "z": float(s[0]), "torso": float(s[1]), "leg": float(s[3]),
             "wt": float(s[7]), "wth": float(s[8]), "wl": float(s[9])}
        parts = {}
        for k, x in q.items():
            r = math.log(density(x, EXPERT[k]) / density(x, NEGATIVE[k]))
            parts[k] = WEIGHT[k] * max(-2.5, min(2.5, r))
        now = sum(parts.values())
        # falling: these leave no doubt
        if q["z"] < 1.0:
            now -= 10.0 * min(0.3, 1.0 - q["z"])
        if float(s[2]) < -0.75:
            now -= 1.5
        self.n += 1
        self.mean += max(1.0 / (self.n + 3), 0.02) * (now - self.mean)
        score = 0.5 * now + 1.5 * self.mean
        if self.n > 250:
            score += min(2.0, (self.n - 250) / 100.0)
        self.text = "n=%d mean=%.2f " % (self.n, self.mean) + " ".join("%s:%+.2f" % kv for kv in parts.items())
        return float(math.tanh(score / 6.0))

    def debug_fn(self, state):
        return self.text


def debug(expert_states, negative_states):
    lines = []
    for k, i in (("vx", 5), ("z", 0), ("torso", 1), ("leg", 3), ("wt", 7), ("wth", 8), ("wl", 9)):
        m = []
        for rows in (expert_states, negative_states):
            v = [math.log(density(float(r[i]), EXPERT[k]) / density(float(r[i]), NEGATIVE[k])) for r in rows]
            m.append(float(np.mean(v)) if v else 0.0)
        lines.append("%s: mean ratio expert %+.2f, negative %+.2f" % (k, m[0], m[1]))
    return "\n".join(lines)


# The discriminator that was fitted: D(s) = sigmoid(SCALE * reward + OFFSET - log pi).
SCALE = 3.0510504388058006
OFFSET = -0.4814195870775612


def discriminator_logit(reward, log_pi=0.0):
    """Logit of D, for one reward or an array: above 0 where a state looks more like an expert's than not."""
    return SCALE * reward + OFFSET - log_pi
