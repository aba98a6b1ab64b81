import { anyOf, type Fault } from './fault.js';

/** A rolling update: the next one is there before the last one is asked to end. */
export const leave: Fault = {
  name: 'leave',
  flag: 'leaves',
  help: 'workers and gateways that are told to end (SIGTERM), and replaced',
  groups: anyOf('worker', 'gateway'),
  strike: async ([member]) => {
    await member!.succeed();
    return 'told to end';
  },
};
