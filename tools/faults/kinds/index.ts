import { skewClock } from './clock.js';
import type { Fault } from './fault.js';
import { kill, killGateway } from './kill.js';
import { leave } from './leave.js';
import { eraseNats, loseQuorum, restartNats } from './nats.js';
import { partition } from './partition.js';
import { stop } from './stop.js';

/** All kinds of faults: flags, help, plans and the documents' tables come from here. */
export const FAULTS: readonly Fault[] = [
  kill,
  stop,
  partition,
  killGateway,
  leave,
  skewClock,
  restartNats,
  eraseNats,
  loseQuorum,
];

/** @throws where there is none of this name */
export function faultNamed(name: string): Fault {
  const found = FAULTS.find((fault) => fault.name === name);
  if (found === undefined)
    throw new Error(
      `There is no fault "${name}"; there are ${FAULTS.map((fault) => fault.name).join(', ')}.`,
    );
  return found;
}
