import { callIn, putCall } from '../../engine/ranks/call-bytes.js';
import type { GroupHandle } from '../../engine/sharding/group.js';
import { CHANNELS } from '../../engine/sharding/rank-plan.js';
import { type GroupShape, ranksOfStage, sizeOf } from '../../engine/sharding/rank-shape.js';
import { FRAMES, type Frame, textFrame } from './frames.js';

/** Ranks that read what `writer` publishes on a channel, itself left out. */
function readersOf(shape: GroupShape, writer: number, channel: number): number[] {
  const stage = Math.floor(writer / shape.tensorParallelSize);
  const ranks =
    channel === CHANNELS.output
      ? [0]
      : channel === CHANNELS.nextStage
        ? ranksOfStage(shape, stage + 1).filter((rank) => rank < sizeOf(shape))
        : ranksOfStage(shape, stage);
  return ranks.filter((rank) => rank !== writer);
}

interface Queued {
  writer: number;
  channel: number;
  number: number;
  bytes: Uint8Array;
}

/** Least distance at which a slot of an outbox is written again. */
const SLOTS = 2;

/**
 * Carries what the ranks of a group write between their memories, where they share none. Each rank has a memory of its own for the whole
 * group, in which its relay does what the other ranks do:
 *
 *   rank 0's memory                                      rank 1's memory
 *   outbox 0: written -> published   relay === frame ===> relay   outbox 0: copied -> published -> read, taken
 *   outbox 1: read, taken  <- copied relay <== frame ==== relay   published <- written :outbox 1
 *
 * All frames go by rank 0, which passes on what is for others. Data is taken as soon as the relay has a copy; what comes too early
 * waits for its slot.
 */
export class Relay {
  readonly #group: GroupHandle;
  readonly #shape: GroupShape;
  readonly #rank: number;
  readonly #send: (rank: number, frame: Frame) => void;
  readonly #published = [0, 0, 0];
  #call = 0;
  #answered = 0;
  #isAborted = false;
  #queue: Queued[] = [];

  /** @param send sends a frame towards a rank */
  constructor(
    group: GroupHandle,
    shape: GroupShape,
    rank: number,
    send: (rank: number, frame: Frame) => void,
  ) {
    this.#group = group;
    this.#shape = shape;
    this.#rank = rank;
    this.#send = send;
  }

  /** Sends what this rank has done since the last time. */
  pump(): void {
    if (this.#isAborted) return;
    const reason = this.#group.abortReason;
    if (reason !== null) {
      this.#isAborted = true;
      this.#toOthers(textFrame(FRAMES.abort, reason));
      return;
    }
    if (this.#rank === 0) this.#pumpCall();
    for (const channel of Object.values(CHANNELS)) this.#pumpPublications(channel);
    if (this.#rank !== 0) this.#pumpAnswer();
    this.#deliver();
  }

  /** Takes a frame of another rank. */
  receive(frame: Frame): void {
    const [a, b, c] = frame.numbers;
    switch (frame.kind) {
      case FRAMES.call:
        putCall(this.#group.call, a, b, frame.bytes);
        this.#group.relayCall(a);
        break;
      case FRAMES.publication:
        for (const reader of readersOf(this.#shape, a, b)) {
          if (reader === this.#rank)
            this.#queue.push({ writer: a, channel: b, number: c, bytes: frame.bytes });
          else if (this.#rank === 0) this.#send(reader, frame);
        }
        this.#deliver();
        break;
      case FRAMES.answer:
        this.#group.relayAnswer(a, b, c, Buffer.from(frame.bytes).toString('utf8'));
        break;
      case FRAMES.abort: {
        const text = Buffer.from(frame.bytes).toString('utf8');
        if (this.#rank === 0 && !this.#isAborted) this.#toOthers(frame);
        this.#isAborted = true;
        this.#group.abort(text);
        break;
      }
    }
  }

  #toOthers(frame: Frame): void {
    if (this.#rank !== 0) {
      this.#send(0, frame);
      return;
    }
    for (let rank = 1; rank < sizeOf(this.#shape); rank++) this.#send(rank, frame);
  }

  #pumpCall(): void {
    const last = this.#group.callNumber();
    while (this.#call !== last) {
      this.#call = (this.#call + 1) >>> 0;
      const { place, bytes } = callIn(this.#group.call, this.#call);
      this.#toOthers({ kind: FRAMES.call, numbers: [this.#call, place, 0], bytes });
    }
  }

  #pumpPublications(channel: number): void {
    const last = this.#group.published(this.#rank, channel);
    while (this.#published[channel] !== last) {
      const number = (this.#published[channel]! + 1) >>> 0;
      this.#published[channel] = number;
      const bytes = this.#group.publication(channel, number);
      const readers = readersOf(this.#shape, this.#rank, channel);
      const frame = { kind: FRAMES.publication, numbers: [this.#rank, channel, number] as const, bytes };
      // Rank 0 passes it on to the others.
      if (this.#rank === 0) for (const reader of readers) this.#send(reader, frame);
      else this.#send(0, frame);
      for (const reader of readers) this.#group.relayTaken(reader, this.#rank, channel, number);
    }
  }

  #pumpAnswer(): void {
    const { call, result, error } = this.#group.answerOf(this.#rank);
    if (call === this.#answered) return;
    this.#answered = call;
    this.#send(0, { kind: FRAMES.answer, numbers: [this.#rank, call, result], bytes: Buffer.from(error) });
  }

  /** Puts what has come into the slots that are free. */
  #deliver(): void {
    this.#queue = this.#queue.filter(({ writer, channel, number, bytes }) => {
      const taken = this.#group.taken(this.#rank, writer, channel);
      if (((number - taken) | 0) > SLOTS) return true;
      this.#group.relayPublication(writer, channel, number, bytes);
      return false;
    });
  }
}
