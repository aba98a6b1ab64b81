import type { StoredMessage } from './stored-conversation.js';

/** The messages of a conversation with all their versions. Nothing is ever taken out. */
export class MessageTree {
  readonly #messages = new Map<string, StoredMessage>();
  /** Ids by the message before them, in the order in which they were made. */
  readonly #children = new Map<string | null, string[]>();

  constructor(messages: readonly StoredMessage[] = []) {
    for (const message of messages) this.add(message);
  }

  /** Each after its parent. */
  get messages(): StoredMessage[] {
    return [...this.#messages.values()];
  }

  add(message: StoredMessage): void {
    const { id, parent } = message;
    this.#messages.set(id, message);
    const versions = this.#children.get(parent);
    if (versions === undefined) this.#children.set(parent, [id]);
    else versions.push(id);
  }

  /** The versions of a message, which have one parent. */
  versions(id: string): readonly string[] {
    const message = this.#messages.get(id);
    return message === undefined ? [] : this.#children.get(message.parent)!;
  }

  /** The messages from the first to this one; null: none. */
  path(leaf: string | null): StoredMessage[] {
    const path: StoredMessage[] = [];
    for (let id = leaf; id !== null; ) {
      const message = this.#messages.get(id);
      if (message === undefined) break;
      path.push(message);
      id = message.parent;
    }
    return path.reverse();
  }

  /** The end of the branch through a message: after it, the latest version of each. */
  leafOf(id: string): string {
    let leaf = id;
    for (let next = this.#children.get(leaf); next !== undefined; next = this.#children.get(leaf)) {
      leaf = next.at(-1)!;
    }
    return leaf;
  }
}
