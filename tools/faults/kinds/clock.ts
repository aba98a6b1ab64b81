import type { Fault } from './fault.js';

/** Milliseconds that a clock is wrong by at most. Below a day: what is kept for days does not expire by it. */
const MAX_SKEW_MS = 12 * 3_600_000;

/** The wall clock of a program jumps, and jumps back. */
export const skewClock: Fault = {
  name: 'clock',
  flag: 'clocks',
  help: 'workers and gateways whose clock jumps, by up to twelve hours in either direction, and back',
  groups: ({ members }) => members.filter(({ clock }) => clock !== null).map((member) => [member]),
  strike: async ([member], { random, lasting }) => {
    const skewMs = Math.round(Math.exp(random.uniform() * Math.log(MAX_SKEW_MS)));
    member!.clock!.skew(random.below(2) === 0 ? skewMs : -skewMs);
    try {
      await lasting(200, 5_000);
    } finally {
      member!.clock!.skew(0);
    }
    return 'a clock that jumped';
  },
};
