import { readFileSync } from 'node:fs';
import { option, says } from '../../../base/named-text.js';
import { type CurveKeys, readCertificate } from '../../../cluster/zeromq/curve.js';
import { type Endpoint, EndpointError, readEndpoint } from '../../../cluster/zeromq/endpoint.js';
import { KvEventPublisher } from '../../../cluster/zeromq/kv-event-publisher.js';
import { KvEventWire } from '../../../cluster/zeromq/kv-event-wire.js';
import type { KvCacheEvent } from '../../../kvcache/cache-events.js';
import { fileProblem } from '../../errors/file-problem.js';
import type { ModelAdapters } from '../adapters/model-adapters.js';
import type { ModelOptions } from '../model-options.js';
import { loadZeroMq, ZEROMQ_MISSING } from './zeromq-package.js';

/** Longest topic in bytes, so that a subscription to it fits into what readers may send. */
const LONGEST_TOPIC = 512;
/** Batches that a reader can ask for again, as in vLLM. */
const DEFAULT_REPLAY_BATCHES = 10_000;

/** What is said of a model's events at the start. */
export interface KvEventsInfo {
  address: string;
  replayAddress: string | null;
  /**
   * Clients that reach an address learn the tokens of all prompts: other machines reach one, and no keys are
   * asked for.
   */
  isOpen: boolean;
}

/** The events of one model's cache, for routers outside. */
export class KvEvents {
  readonly info: KvEventsInfo;
  readonly #publisher: KvEventPublisher;
  readonly #wire: KvEventWire;
  #adapters: ModelAdapters | null = null;

  private constructor(publisher: KvEventPublisher, isOpen: boolean) {
    const { address, replayAddress } = publisher;
    this.info = { address, replayAddress, isOpen };
    this.#publisher = publisher;
    this.#wire = new KvEventWire({ adapterName: (taskId) => this.#adapterName(taskId) });
  }

  /**
   * Opens the sockets of a model's options. null: the model has none of these options.
   * @throws EndpointError
   */
  static async open(options: ModelOptions, onError: (error: Error) => void): Promise<KvEvents | null> {
    const plan = planOf(options);
    if (plan === null) return null;
    const zmq = loadZeroMq();
    if (zmq === null) throw new EndpointError(ZEROMQ_MISSING);
    const publisher = await KvEventPublisher.open(zmq, { ...plan, onError });
    const isRemote = plan.endpoint.isRemote || plan.replayEndpoint?.isRemote === true;
    return new KvEvents(publisher, isRemote && plan.keys === null);
  }

  publish(events: readonly KvCacheEvent[]): void {
    this.#publisher.publish(this.#wire.translate(events));
  }

  /** Notes that the engine died. */
  lose(): void {
    this.#publisher.publish(this.#wire.lose());
  }

  /** Notes where the names of the adapters are. */
  nameAdapters(adapters: ModelAdapters | null): void {
    this.#adapters = adapters;
  }

  close(): void {
    this.#publisher.close();
  }

  #adapterName(taskId: bigint): string | null {
    return this.#adapters?.list().find((adapter) => adapter.taskId === taskId)?.name ?? null;
  }
}

type Plan = Omit<Parameters<typeof KvEventPublisher.open>[1], 'onError'>;

/** Checks the options against each other. */
function planOf(options: ModelOptions): Plan | null {
  const { kvEventsEndpoint, kvEventsReplayEndpoint, kvEventsTopic: topic = '' } = options;
  if (kvEventsEndpoint === undefined) {
    refuseAlone(options);
    return null;
  }
  if (!options.prefixCaching || options.batchingScheme === 'V1') {
    throw new EndpointError(
      says`${option('kvEventsEndpoint')} needs ${option('prefixCaching')}, without V1: no other cache keeps blocks of which there is something to tell.`,
    );
  }
  if (Buffer.byteLength(topic) > LONGEST_TOPIC) {
    throw new EndpointError(
      says`${option('kvEventsTopic')} has ${Buffer.byteLength(topic)} bytes; at most ${LONGEST_TOPIC} are allowed.`,
    );
  }
  const endpoint = readEndpoint('kvEventsEndpoint', kvEventsEndpoint);
  const replayEndpoint =
    kvEventsReplayEndpoint === undefined
      ? null
      : readEndpoint('kvEventsReplayEndpoint', kvEventsReplayEndpoint);
  if (replayEndpoint?.isBound === false) {
    throw new EndpointError(
      says`${option('kvEventsReplayEndpoint')} is "${kvEventsReplayEndpoint}", to which this server would connect; readers come here to ask, so it has to listen, such as at tcp://*:5558 or @tcp://HOST:5558.`,
    );
  }
  return {
    endpoint,
    replayEndpoint,
    topic,
    format: options.kvEventsFormat ?? 'map',
    bufferSteps: options.kvEventsReplayBatches ?? DEFAULT_REPLAY_BATCHES,
    ...curveOf(options, endpoint),
  };
}

/** @throws EndpointError for options that do nothing without an endpoint */
function refuseAlone(options: ModelOptions): void {
  const names = [
    'kvEventsReplayEndpoint',
    'kvEventsTopic',
    'kvEventsCurveKeyFile',
    'kvEventsCurvePeerFile',
  ] as const;
  const alone = names.find((name) => options[name] !== undefined);
  if (alone === undefined) return;
  throw new EndpointError(
    says`${option(alone)} needs ${option('kvEventsEndpoint')}, the address where events of the KV cache are published.`,
  );
}

function curveOf(
  { kvEventsCurveKeyFile: file, kvEventsCurvePeerFile: peers = [] }: ModelOptions,
  { isBound }: Endpoint,
): { keys: CurveKeys | null; peerKeys: string[] } {
  if (file === undefined) {
    if (peers.length === 0) return { keys: null, peerKeys: [] };
    throw new EndpointError(
      says`${option('kvEventsCurvePeerFile')} needs ${option('kvEventsCurveKeyFile')}, the keys of this side.`,
    );
  }
  const { publicKey, secretKey } = certificate('kvEventsCurveKeyFile', file);
  if (secretKey === null) {
    throw new EndpointError(
      says`The file of ${option('kvEventsCurveKeyFile')}, ${file}, has no line secret-key = "..."; give the one whose name ends with .key_secret.`,
    );
  }
  if (!isBound && peers.length !== 1) {
    throw new EndpointError(
      says`${option('kvEventsCurvePeerFile')} has ${peers.length} files; exactly one is expected, with the public key of the side that is connected to.`,
    );
  }
  const peerKeys = peers.map((peer) => certificate('kvEventsCurvePeerFile', peer).publicKey);
  return { keys: { publicKey, secretKey }, peerKeys };
}

function certificate(name: string, path: string) {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new EndpointError(
      says`The file of ${option(name)}, ${path}, cannot be read: ${fileProblem(error)}`,
    );
  }
  return readCertificate(says`The file of ${option(name)}, ${path},`, text);
}
