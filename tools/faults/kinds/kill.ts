import { anyOf, type Fault } from './fault.js';

/** A process dies at once, and another one comes in its place. */
export const kill: Fault = {
  name: 'kill',
  flag: 'kills',
  help: 'workers that are killed (SIGKILL), and replaced',
  groups: anyOf('worker'),
  strike: async ([worker]) => {
    await worker!.end('SIGKILL');
    await worker!.start();
    return 'killed';
  },
};

export const killGateway: Fault = {
  name: 'gateway-kill',
  flag: 'gateway-kills',
  help: 'gateways that are killed, and replaced: their clients ask the others',
  groups: anyOf('gateway'),
  strike: kill.strike,
};
