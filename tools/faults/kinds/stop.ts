import { anyOf, type Fault } from './fault.js';

/** A process stands still, its connections stay, and it continues as if nothing had happened. */
export const stop: Fault = {
  name: 'stop',
  flag: 'stops',
  help: 'workers, gateways and NATS servers that are stopped (SIGSTOP), and go on later (SIGCONT)',
  groups: anyOf('worker', 'gateway', 'nats'),
  strike: async ([member], { lasting }) => {
    member!.signal('SIGSTOP');
    try {
      await lasting(200, 9_000);
    } finally {
      member!.signal('SIGCONT');
    }
    return 'stopped';
  },
};
