import { GuideFollower } from '../../engine/guided/guide-follower.js';
import type { GuideReply, GuideRequest, GuideThread } from '../../engine/guided/guide-messages.js';
import { TokenTrie } from '../../engine/guided/token-trie.js';

/**
 * A thread that follows guides, in this one: it answers when it is asked, or where `delayOf` says so only after some looks
 * for an answer.
 */
export class InlineGuideThread implements GuideThread {
  isDead = true;
  starts = 0;
  busyWith = -1;
  /** Guides are read only after this many waits. */
  waitsToOpen = 0;
  /** Looks for an answer (`receive` or `wait`, where there is none) that a reply takes. */
  delayOf: (reply: GuideReply) => number = () => 0;
  /** Called with each request, before it is answered. */
  onRequest: (request: GuideRequest) => void = () => {};
  readonly requests: GuideRequest[] = [];
  readonly #trie: TokenTrie;
  #follower: GuideFollower | null = null;
  #replies: GuideReply[] = [];
  #opened: GuideReply[] = [];
  #delayed: { reply: GuideReply; looks: number }[] = [];

  constructor(bytesOf: readonly (Uint8Array | null)[]) {
    this.#trie = new TokenTrie(bytesOf);
  }

  start(): void {
    this.isDead = false;
    this.starts++;
    this.busyWith = -1;
    this.#replies = [];
    this.#opened = [];
    this.#delayed = [];
    this.#follower = new GuideFollower(
      this.#trie,
      (reply) => this.#answer(reply),
      null,
      (first) => this.#note(first),
    );
  }

  stop(): void {
    this.isDead = true;
  }

  post(request: GuideRequest): void {
    this.requests.push(request);
    this.onRequest(request);
    if (this.isDead) return;
    this.#follower!.handle(request);
    while (this.#follower!.hasWork) this.#follower!.work();
  }

  receive(): GuideReply | undefined {
    const reply = this.#replies.shift();
    if (reply === undefined) this.#look();
    return reply;
  }

  wait(): boolean {
    if (this.waitsToOpen > 0) this.waitsToOpen--;
    if (this.waitsToOpen === 0) this.#replies.push(...this.#opened.splice(0));
    this.#look();
    return this.#replies.length > 0;
  }

  /** Bytes that guides take. */
  get size(): number {
    return this.#follower?.size ?? 0;
  }

  #note(first: number): void {
    if (!this.isDead) this.busyWith = first;
  }

  #answer(reply: GuideReply): void {
    const looks = this.delayOf(reply);
    if (reply.type === 'opened' && this.waitsToOpen > 0) this.#opened.push(reply);
    else if (looks > 0) this.#delayed.push({ reply, looks });
    else this.#replies.push(reply);
  }

  #look(): void {
    for (const delayed of this.#delayed) delayed.looks--;
    this.#replies.push(...this.#delayed.filter(({ looks }) => looks <= 0).map(({ reply }) => reply));
    this.#delayed = this.#delayed.filter(({ looks }) => looks > 0);
  }
}
