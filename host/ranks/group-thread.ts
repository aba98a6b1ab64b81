import { rmSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { isShared } from '../../callbacks/group-address.js';
import { openEngine } from '../../engine/building/engine.js';
import { loadAddon } from '../../engine/executors/native/load-addon.js';
import { modelName } from '../../engine/ranks/model-name.js';
import type { GroupHandle } from '../../engine/sharding/group.js';
import { sizeOf } from '../../engine/sharding/rank-shape.js';
import { FRAMES, type Frame, textFrame } from './frames.js';
import { makeGroupMemory } from './group-memory.js';
import type { FromGroupThread, GroupThreadData, ToGroupThread } from './group-messages.js';
import { Relay } from './relay.js';
import { awaitRanks, joinRanks, type MetGroup } from './rendezvous.js';

/**
 * The thread that holds a rank's connections to the others, apart from the host's thread and from that of the loop, both of which are
 * busy for longer than an exchange may wait.
 */
class GroupThread {
  readonly #data: GroupThreadData;
  #met: MetGroup | null = null;
  #group: GroupHandle | null = null;
  #relay: Relay | null = null;
  /** Memory that this thread has made, until all ranks have it. */
  #own: string | null = null;
  /** Ranks that have taken their leave. */
  readonly #gone = new Set<number>();
  #early: [number, Frame][] = [];
  #isEnding = false;

  constructor(data: GroupThreadData) {
    this.#data = data;
  }

  async join(): Promise<void> {
    const { enginePath, address, shape, rank } = this.#data;
    const events = {
      onFrame: (from: number, frame: Frame) => this.#receive(from, frame),
      onEnd: (from: number, reason: string) => this.#lose(from, reason),
      onMissing: (ranks: number[], refused: string | null) => post({ type: 'missing', ranks, refused }),
    };
    const { plan, manifest } = openEngine(enginePath);
    const meeting = { ...this.#data, model: modelName({ plan, tensors: manifest.tensors }) };
    const shared = isShared(address);
    if (rank === 0 || !shared) this.#own = this.#make(sizeOf(shape));
    const met =
      rank === 0
        ? await awaitRanks(meeting, shared ? this.#own : null, events)
        : await joinRanks(meeting, events);
    const path = this.#own ?? met.path!;
    this.#group = new (loadAddon().RankGroup)({ path, rank, size: sizeOf(shape), limitMs: 1 });
    if (!shared) {
      this.#relay = new Relay(this.#group, shape, rank, (to, frame) => met.sockets.get(to)?.send(frame));
      this.#group.watch(() => this.#relay?.pump());
    }
    this.#met = met;
    for (const [from, frame] of this.#early.splice(0)) this.#receive(from, frame);
    post({ type: 'joined', path });
  }

  take(message: ToGroupThread): void {
    if (message.type === 'end') {
      this.#end(message.reason);
      return;
    }
    const frame: Frame = { kind: FRAMES.message, numbers: [0, 0, 0], bytes: serialize(message.message) };
    for (const [rank, socket] of this.#met?.sockets ?? []) {
      if (message.rank === 'all' || message.rank === rank) socket.send(frame);
    }
  }

  /** The ranks have not met. */
  giveUp(): void {
    this.#removeOwn();
    parentPort!.close();
  }

  #removeOwn(): void {
    if (this.#own !== null) rmSync(this.#own, { force: true });
  }

  #make(size: number): string {
    const { path, group } = makeGroupMemory(size);
    group.close();
    return path;
  }

  #receive(from: number, frame: Frame): void {
    // A rank that learned sooner that all have met may send already.
    if (this.#met === null) this.#early.push([from, frame]);
    else if (frame.kind === FRAMES.goodbye) this.#gone.add(from);
    else if (frame.kind === FRAMES.message)
      post({ type: 'message', rank: from, message: deserialize(frame.bytes) });
    else if (frame.kind === FRAMES.abort && this.#relay === null)
      this.#lose(from, Buffer.from(frame.bytes).toString());
    else this.#relay?.receive(frame);
  }

  #lose(from: number, reason: string): void {
    if (this.#isEnding || this.#gone.has(from) || this.#met === null) return;
    const { shape } = this.#data;
    const text = this.#group!.abortReason ?? `Rank ${from} of ${sizeOf(shape)} is gone: ${reason}.`;
    this.#group!.abort(text);
    this.#relay?.pump();
    post({ type: 'lost', reason: text });
  }

  #end(reason: string | null): void {
    this.#isEnding = true;
    if (this.#met === null) {
      this.#removeOwn();
      process.exit();
    }
    if (reason !== null) this.#group?.abort(reason);
    this.#relay?.pump();
    for (const socket of this.#met?.sockets.values() ?? []) {
      socket.send(reason === null ? textFrame(FRAMES.goodbye, '') : textFrame(FRAMES.abort, reason));
      socket.end();
    }
    this.#removeOwn();
    this.#group?.close();
    this.#relay = null;
    parentPort!.close();
    // Connections that do not close hold the thread no longer than this.
    setTimeout(() => process.exit(), LAST_WORDS_MS).unref();
  }
}

const LAST_WORDS_MS = 2000;

function post(message: FromGroupThread): void {
  parentPort!.postMessage(message);
}

const thread = new GroupThread(workerData as GroupThreadData);
parentPort!.on('message', (message: ToGroupThread) => thread.take(message));
try {
  await thread.join();
} catch (error) {
  thread.giveUp();
  throw error;
}
