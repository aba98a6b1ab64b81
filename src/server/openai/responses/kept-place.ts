import type { StoredConversation } from './conversation-store.js';
import type { KeptItem, StoredResponse } from './response-store.js';

/** A conversation as it was read. */
export interface ConversationAt {
  conversation: StoredConversation;
  /** Grows with each change of it. */
  revision: number;
}

/** Where responses and conversations are kept, by their owner and id: in memory, or where other servers find them too. */
export interface KeptPlace {
  /** Keeps a response, in place of the one that had its id, unless it alone exceeds the limits. */
  putResponse(owner: string, stored: StoredResponse): Promise<void>;
  response(owner: string, id: string): Promise<StoredResponse | null>;
  /**
   * Keeps a conversation in place of the one of this revision; 0: there is none. False: another writer was
   * faster.
   */
  putConversation(owner: string, conversation: StoredConversation, revision: number): Promise<boolean>;
  conversation(owner: string, id: string): Promise<ConversationAt | null>;
  /** False where this owner has none. */
  forget(owner: string, id: string): Promise<boolean>;
  /** Finds items in the output of some response, or in some conversation. */
  finder(owner: string): Promise<FindItem>;
  /** True while a turn that a server has begun may still end. */
  isUnderWay(server: string): Promise<boolean>;
  /** Id of this server among those that have the same place. */
  readonly server: string;
}

export type FindItem = (id: string) => Promise<KeptItem | null>;
