import type { PictureSources } from '../../generation/pictures/picture-files.js';
import type { PromptRule } from '../../prompt-rules.js';
import type { ModelDirectory } from '../../serving/model-directory.js';
import type { ObserveRequest } from '../../serving/request-observer.js';
import type { ToolServers } from '../mcp/tool-server.js';
import type { Caller } from '../web/access/api-keys.js';
import type { EventStreamOptions } from '../web/event-stream.js';
import type { RecentPrompts } from './recent-prompts.js';

/** Services that every answer of a text model uses, whatever the protocol. */
export interface AnsweringServices {
  models: ModelDirectory;
  observe: ObserveRequest;
  eventStream: EventStreamOptions;
  /** True where requests may bring chat templates. */
  trustsTemplates: boolean;
  /** The prompts of the last chats. */
  recentPrompts: RecentPrompts;
  /** Names of the rules by which lines that change are left out of prompts. */
  promptRules: ReadonlySet<PromptRule>;
  /** Ways to pictures that a caller's requests only name. */
  pictureSources: (caller: Caller) => PictureSources;
  /** Servers of tools (MCP) that requests may use; null: there are none. */
  toolServers: ToolServers | null;
}
