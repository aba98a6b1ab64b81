import type { Fleet } from './fleet/fleet.js';
import { QueueFleet } from './fleet/queue-fleet.js';
import { RouterFleet } from './fleet/router-fleet.js';
import { ROUTERS } from './fleet/routers.js';
import type { EngineOptions } from './fleet/skein-program.js';
import type { RunOptions, Surroundings } from './options.js';
import { type Expected, expectedAnswers } from './reference.js';
import { type DrawnRequest, drawRequests } from './requests/draw-requests.js';
import { type FaultReport, runFaults } from './run-faults.js';
import { drawSchedule, parsePlan } from './schedule.js';

/** The flag that makes NATS a cluster of three. */
const CLUSTER_FLAG = 'quorum-losses';

/** Answers of a single server to requests that were asked before, by their text. */
export type KnownAnswers = Map<string, Expected>;

/**
 * A run from its options to its report: draws requests and faults, asks a single server, starts a fleet, asks it while faults strike, and
 * ends all that it has started.
 * @param known answers of former runs, to which those of this one are added
 */
export async function wholeRun(
  options: RunOptions,
  surroundings: Surroundings,
  onProgress: (text: string) => void = () => {},
  known: KnownAnswers = new Map(),
): Promise<FaultReport> {
  const { requests: count, seed, kind, only, at, counts, concurrency } = options;
  const drawn = drawRequests(count, seed, { isOwn: options.router === '', kind });
  const requests = only === null ? drawn : drawn.filter(({ index }) => only.includes(index));
  const engine: EngineOptions = { modelArguments: [], ...surroundings };
  await learn(requests, known, (unknown) => {
    onProgress(`${unknown.length} answers of a single server`);
    return expectedAnswers(unknown, engine, concurrency);
  });
  const expected = requests.map((request) => known.get(keyOf(request))!);
  const numTokens = expected.reduce((sum, one) => sum + one.numTokens, 0);
  const plan = at === '' ? drawSchedule(counts, numTokens, seed) : parsePlan(at);
  const isCluster = plan.some(({ kind }) => kind === 'quorum') || counts[CLUSTER_FLAG]! > 0;
  onProgress(`${numTokens} tokens, ${plan.length} faults`);
  const fleet = await openFleet(options, surroundings, engine, isCluster);
  onProgress('all programs are there');
  try {
    return await runFaults({ fleet, requests, expected, plan, concurrency, onProgress });
  } finally {
    await fleet.close();
  }
}

const keyOf = ({ script }: DrawnRequest) => script.key;

async function learn(
  requests: readonly DrawnRequest[],
  known: KnownAnswers,
  ask: (unknown: readonly DrawnRequest[]) => Promise<Expected[]>,
): Promise<void> {
  const unknown = requests.filter((request) => !known.has(keyOf(request)));
  if (unknown.length === 0) return;
  const answers = await ask(unknown);
  for (const [index, request] of unknown.entries()) known.set(keyOf(request), answers[index]!);
}

function openFleet(
  { router: routerName, workers, prefill, gateways }: RunOptions,
  { nats, routerFolder }: Surroundings,
  engine: EngineOptions,
  isCluster: boolean,
): Promise<Fleet> {
  if (routerName !== '') {
    const router = ROUTERS.find(({ name }) => name === routerName);
    if (router === undefined)
      throw new Error(
        `There is no router "${routerName}"; there are ${ROUTERS.map(({ name }) => name).join(', ')}.`,
      );
    return RouterFleet.start({ ...engine, router, routerFolder, workers });
  }
  if (nats === null) throw new Error('There is no nats-server: apt-get install nats-server.');
  const natsServers = isCluster ? 3 : 1;
  return QueueFleet.start({ ...engine, nats, natsServers, workers, prefillWorkers: prefill, gateways });
}
