import type { SimulationOptions } from '../../engine/simulation/simulation.js';
import type { GatewayCost } from './gateway-loop.js';
import type { RequestResults } from './request-results.js';

/** How long an iteration takes, in milliseconds. Each is rounded to nanoseconds. */
export interface Pace {
  /** Any iteration. */
  iterationMs: number;
  /** Each prompt token in it, and each sequence that generates. */
  contextTokenMs: number;
  generationMs: number;
}

/**
 * What decides where a request goes. random, fewest-requests and cache: the chosen worker gets it at once;
 * queue: it waits until a worker asks for it, as with skein gateway --routing any and skein work;
 * queue-cache: it waits until a worker has room, and is sent to the one of these where most of it is cached,
 * as with --routing cache.
 */
export const ROUTING_POLICIES = ['random', 'fewest-requests', 'queue', 'queue-cache', 'cache'] as const;
export type RoutingPolicy = (typeof ROUTING_POLICIES)[number];

/** A time in which a worker is not there. It comes back with an empty cache. */
export interface Outage {
  worker: number;
  atMs: number;
  backAtMs: number;
  /**
   * update: it was asked to end, and hands over what it has at once. Either way another worker continues with
   * the tokens that are there.
   */
  kind: 'death' | 'update';
}

export interface ClusterOptions {
  workers: number;
  /** Each worker; block reuse is on. */
  worker: Omit<SimulationOptions, 'enableBlockReuse' | 'maxEvents'>;
  pace: Pace;
  routing: RoutingPolicy;
  /** Milliseconds until the router learns what a cache has stored or removed. */
  eventDelayMs: number;
  /** 0 (included) to 1 (excluded), for random routing. */
  random: () => number;
  outages?: readonly Outage[];
  /** Milliseconds until the requests of a worker that has died go to others; default 0. */
  noticeMs?: number;
  /** Time of the gateway of queue and queue-cache, of which there is one; absent: it takes none. Then every iteration is run by itself. */
  gateway?: GatewayCost;
  /** True: every iteration is run by itself. Default false: those in which nothing happens but a token each are run at once. */
  stepsAll?: boolean;
}

export interface ClusterArrival {
  atMs: number;
  /** The prompt. */
  tokens: Int32Array;
  maxNewTokens: number;
}

export interface ClusterRequestResult {
  /** Of the worker that brought the first token. */
  worker: number;
  /** Milliseconds from its arrival to its first token, and to its last. */
  firstTokenMs: number;
  lastTokenMs: number;
  promptTokens: number;
  /** Prompt tokens that its first worker found in its cache. */
  cachedTokens: number;
  /** Workers that it was sent to. */
  attempts: number;
}

export interface ClusterResult {
  requests: RequestResults;
  /** Iterations of all workers that have ended. */
  iterations: number;
  /** Prompt tokens that were computed, those computed once more after an outage included. */
  contextTokens: number;
  /** Tokens that requests got. */
  generatedTokens: number;
  /** Milliseconds until the last request had ended. */
  endMs: number;
  /** Milliseconds that the gateway's loop was busy. */
  gatewayBusyMs: number;
  /** Most requests that waited at once because no worker was there, or had room for them. */
  mostWaiting: number;
}
