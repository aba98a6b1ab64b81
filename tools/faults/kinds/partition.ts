import type { Wire } from '../fleet/wire.js';
import type { Blow, Fault } from './fault.js';

/** Ways in which a network is divided; those that hold bytes end with the connection or continue with it. */
const WAYS: Readonly<Record<string, (wire: Wire, random: Blow['random']) => void>> = {
  'cut off': (wire) => wire.hold(),
  'not heard': (wire) => wire.hold(['up']),
  'not told': (wire) => wire.hold(['down']),
  slowed: (wire, random) => wire.slow(50 + random.below(1_000)),
  disconnected: (wire) => wire.cut(),
};

/** A member's network fails, while it runs. */
export const partition: Fault = {
  name: 'partition',
  flag: 'partitions',
  help: 'workers and gateways whose connections are held in both directions or in one, slowed or cut',
  groups: ({ members }) => members.filter(({ wire }) => wire !== null).map((member) => [member]),
  strike: async ([member], { random, lasting }) => {
    const wire = member!.wire!;
    const names = Object.keys(WAYS);
    const way = names[random.below(names.length)]!;
    const isReset = random.below(2) === 0;
    WAYS[way]!(wire, random);
    try {
      await lasting(200, 9_000);
    } finally {
      if (isReset) wire.reset();
      wire.release();
    }
    return way;
  },
};
