"""A reward recovered from demonstrations by grace-irl 0.1.0.

fitness:      -0.055793 on training data (calibrated, log pi constant)
train:        accuracy 0.9922, auc 0.9990, not separated, fitness -0.055793 (2002 positive, 3002 negative states)
held out:     none
monotonicity: 0.2125 (mean Kendall tau of reward against time along expert trajectories)
label:        all (which expert states are positive)
train data:   2 expert + 3 negative trajectories, 5004 states, digest 44606d074ef0ae69
demos:        HalfCheetah/demos
method:       grace, seed 0, proposer manual
program:      99f899976b3ce55e (candidate 1)
lineage:      99f899976b3ce55e (initialise)
calibration:  scale 15.3719, offset 2.6967
"""

import math

import numpy as np


def clean(state):
    s = np.zeros(17)
    a = np.nan_to_num(np.asarray(state, dtype=float).ravel(), nan=0.0, posinf=50.0, neginf=-50.0)
    n = min(17, a.size)
    s[:n] = np.clip(a[:n], -100.0, 100.0)
    return s


class Reward:
    def __init__(self, extra_info=None):
        self.n = 0
        self.fast = 0.0
        self.slow = 0.0
        self.tilt = 0.0
        self.first = 0.0
        self.text = ""

    def reward_fn(self, state):
        s = clean(state)
        v = float(np.clip(s[8], -3.0, 7.0))
        tilt = min(max(abs(s[1]) - 0.5, 0.0), 2.0)
        if self.n == 0:
            self.first = v
        self.n += 1
        # running means that start as plain means, so that the start is not biased
        a = max(0.1, 1.0 / self.n)
        b = max(0.01, 1.0 / self.n)
        self.fast += a * (v - self.fast)
        self.slow += b * (v - self.slow)
        self.tilt += a * (tilt - self.tilt)
        z = 1.4 * (v - 1.8) + 1.4 * (self.fast - 1.8) + 0.8 * (self.slow - 1.5)
        z -= 1.0 * self.tilt
        z += float(np.clip(3.0 * (s[0] + 0.06), -1.0, 0.3))
        # at the start: a steady gain in speed is the expert's accelerating
        early = math.exp(-self.n / 25.0)
        gain = (v - self.first) * early
        z += 2.0 * gain + 1.5 * early
        self.text = "n=%d v=%.2f fast=%.2f slow=%.2f tilt=%.2f gain=%.2f z=%.2f" % (
            self.n, v, self.fast, self.slow, self.tilt, gain, z)
        return float(z / (5.0 + abs(z)))

    def debug_fn(self, state):
        return self.text


def debug(expert_states, negative_states):
    out = []
    for name, states in (("expert", expert_states), ("negative", negative_states)):
        x = np.asarray([clean(s) for s in states])
        if len(x):
            out.append("%s: velocity_x percentiles 1/5/50/95/99 %s" % (name, np.round(np.percentile(x[:, 8], (1, 5, 50, 95, 99)), 2)))
            out.append("%s: |angle_torso| percentiles 50/95/99 %s" % (name, np.round(np.percentile(abs(x[:, 1]), (50, 95, 99)), 2)))
    return "\n".join(out)


# The discriminator that was fitted: D(s) = sigmoid(SCALE * reward + OFFSET - log pi).
SCALE = 15.3719475217643
OFFSET = 2.6966984759266825


def discriminator_logit(reward, log_pi=0.0):
    """Logit of D, for one reward or an array: above 0 where a state looks more like an expert's than not."""
    return SCALE * reward + OFFSET - log_pi
