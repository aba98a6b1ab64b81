import { GuideFollower } from '../../engine/guided/guide-follower.js';
import type { GuideReply, GuideRequest, GuideThread } from '../../engine/guided/guide-messages.js';
import { TokenTrie } from '../../engine/guided/token-trie.js';

/** A thread that follows guides, in this one: it answers when it is asked, or where `isSlow` only when it is waited for. */
export class InlineGuideThread implements GuideThread {
  isDead = true;
  starts = 0;
  /** Guides are read only after so many waits. */
  waitsToOpen = 0;
  /** Called with each request, before it is answered. */
  onRequest: (request: GuideRequest) => void = () => {};
  readonly requests: GuideRequest[] = [];
  readonly #trie: TokenTrie;
  #follower: GuideFollower;
  #replies: GuideReply[] = [];
  #held: GuideReply[] = [];

  constructor(bytesOf: readonly (Uint8Array | null)[]) {
    this.#trie = new TokenTrie(bytesOf);
    this.#follower = new GuideFollower(this.#trie);
  }

  start(): void {
    this.isDead = false;
    this.starts++;
    this.#replies = [];
    this.#held = [];
    this.#follower = new GuideFollower(this.#trie);
  }

  stop(): void {
    this.isDead = true;
  }

  post(request: GuideRequest): void {
    this.requests.push(request);
    this.onRequest(request);
    if (this.isDead) return;
    this.#follower.handle(request, (reply) => {
      if (reply.type === 'opened' && this.waitsToOpen > 0) this.#held.push(reply);
      else this.#replies.push(reply);
    });
  }

  receive(): GuideReply | undefined {
    return this.#replies.shift();
  }

  wait(): void {
    if (this.waitsToOpen > 0) this.waitsToOpen--;
    if (this.waitsToOpen === 0) this.#replies.push(...this.#held.splice(0));
  }
}
