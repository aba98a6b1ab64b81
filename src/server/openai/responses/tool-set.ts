import type { FunctionTool } from '../../../generation/tools/types.js';
import { type AskedServer, isAllowed, isMcp, needsApproval } from '../../answering/asked-servers.js';
import { MAX_TOOL_UNITS, toolUnits } from '../../answering/schemas/tools.js';
import type { ServedTool } from '../../mcp/tool-server.js';
import { ApiError } from '../../web/errors.js';
import { type Warn, warnOfTypes } from '../../web/warnings.js';
import type {
  CustomTool,
  McpTool,
  NamespaceTool,
  ResponseFunction,
  ResponseTool,
  SearchTool,
} from '../schemas/response-tools.js';
import { asFunction } from './custom-tools.js';
import { isStrict } from './strict-schema.js';

/** A tool that can be described to a model. */
export type KeptTool = ResponseFunction | CustomTool | NamespaceTool | SearchTool;

/** A tool as its calls come back. */
export interface CalledTool {
  kind: 'function' | 'custom' | 'search' | 'mcp';
  name: string;
  namespace?: string | undefined;
  /** Label of the server that runs it; absent: the client does. */
  server?: string;
  /** True where its calls wait for the client's approval. */
  needsApproval?: boolean;
}

/** A list of tools in a request, or in an item of its input. */
export interface ToolSource {
  /** Its path in the request. */
  place: string;
  tools: readonly ResponseTool[];
}

export const SEARCH_NAME = 'tool_search';
/** Most functions of a request, those that were found by searches included. */
const MAX_FUNCTIONS = 1024;

/** The tools of a list that can be described to a model. */
export function keptTools(tools: readonly ResponseTool[] = []): KeptTool[] {
  return tools.filter(isKept);
}

/** The tools of a list that a response shows. */
export function shownTools(tools: readonly ResponseTool[] = []): (KeptTool | McpTool)[] {
  return tools.filter((tool) => isKept(tool) || isMcp(tool)) as (KeptTool | McpTool)[];
}

/** Warns of tools that are left out, since only OpenAI's own servers know their types. */
export function warnOfOthers(tools: readonly ResponseTool[] = [], warn: Warn): void {
  warnOfTypes(
    'Tools',
    tools.filter((tool) => !isKept(tool) && !isMcp(tool)).map(({ type }) => type),
    warn,
  );
}

/** A tool's name for the model, which knows no namespaces: `crm__lookup` of `lookup` in `crm`. */
export function modelName(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}__${name}`;
}

/**
 * All tools of a request as functions that models know how to call, and the way back from a call to the tool:
 *
 *   namespace crm: function lookup, ...   ->  function crm__lookup, ...    ->  name lookup, namespace crm
 *   custom tool apply_patch               ->  function apply_patch(input)  ->  an item with the input as text
 *   search of the client                  ->  function tool_search         ->  an item with the arguments as JSON
 */
export class ToolSet {
  readonly functions: FunctionTool[] = [];
  /** Path of each function in the request. */
  readonly places: string[] = [];
  readonly #called = new Map<string, CalledTool>();

  /**
   * @param given the request's own tools. @param loaded those of its items, of which one that is known already adds
   * nothing.
   * @throws ApiError where they are too many together.
   */
  constructor(given: ToolSource, loaded: readonly ToolSource[] = []) {
    this.#addAll(given, false);
    for (const source of loaded) this.#addAll(source, true);
    if (loaded.length > 0) this.#checkSize();
  }

  #checkSize(): void {
    const units = toolUnits(this.functions);
    if (this.functions.length <= MAX_FUNCTIONS && units <= MAX_TOOL_UNITS) return;
    const found =
      units > MAX_TOOL_UNITS
        ? `longer together than ${MAX_TOOL_UNITS} characters, of which each value counts 32`
        : `${this.functions.length} together, at most ${MAX_FUNCTIONS} are taken`;
    throw new ApiError(400, `The tools of the request and of its items are ${found}.`, { param: 'tools' });
  }

  /** Adds the tools of a server that the request allows. @throws ApiError where all are too many together. */
  addServed({ label, tool: asked, place }: AskedServer, tools: readonly ServedTool[]): void {
    const allowed = tools.filter((tool) => isAllowed(asked, tool));
    for (const [index, tool] of allowed.entries()) {
      const name = modelName(tool.name, label);
      if (this.#called.has(name)) continue;
      const about = index === 0 ? asked.server_description : undefined;
      const description = describedBy(tool.description, about);
      this.functions.push({ name, description, parameters: tool.inputSchema, strict: false });
      this.places.push(place);
      const waits = needsApproval(asked, tool);
      this.#called.set(name, { kind: 'mcp', name: tool.name, server: label, needsApproval: waits });
    }
    this.#checkSize();
  }

  /** The model's names of a server's tools. @param tool the only one of interest; undefined: all are */
  servedNames(label: string, tool: string | undefined): string[] {
    const isAsked = ({ server, name }: CalledTool) =>
      server === label && (tool === undefined || name === tool);
    return [...this.#called].filter(([, one]) => isAsked(one)).map(([name]) => name);
  }

  /** The tool that a model calls by this name; null: there is none. */
  find(name: string): CalledTool | null {
    return this.#called.get(name) ?? null;
  }

  /** The model's name of a tool that a choice names: its own, or that of the only namespace which has such a tool. */
  chosen(name: string): string {
    if (this.#called.has(name)) return name;
    const found = [...this.#called].filter(([, tool]) => tool.name === name);
    return found.length === 1 ? found[0]![0] : name;
  }

  #addAll({ place, tools }: ToolSource, isLoaded: boolean): void {
    for (const [index, tool] of tools.entries()) {
      if (!isKept(tool)) continue;
      const at = `${place}[${index}]`;
      if (tool.type !== 'namespace') {
        this.#add(tool, at, isLoaded);
        continue;
      }
      const { name: namespace, description } = tool;
      for (const [inner, one] of tool.tools.entries()) {
        const about = inner === 0 ? description : undefined;
        this.#add(one, `${at}.tools[${inner}]`, isLoaded, { namespace, about });
      }
    }
  }

  #add(
    tool: Exclude<KeptTool, NamespaceTool>,
    place: string,
    isLoaded: boolean,
    inside: { namespace?: string; about?: string | undefined } = {},
  ): void {
    const own = tool.type === 'tool_search' ? SEARCH_NAME : tool.name;
    const name = modelName(own, inside.namespace);
    if (isLoaded && this.#called.has(name)) return;
    const fields = functionOf(tool);
    const description = describedBy(fields.description, inside.about);
    this.functions.push({ ...fields, name, description });
    this.places.push(place);
    const kind =
      tool.type === 'tool_search' ? 'search' : tool.type === 'custom' ? 'custom' : ('function' as const);
    this.#called.set(name, { kind, name: own, namespace: inside.namespace });
  }
}

/** What a model reads of a tool, and of those that it belongs to. */
function describedBy(...texts: (string | undefined)[]): string | undefined {
  const told = texts.filter((text) => text !== undefined && text !== '');
  return told.length === 0 ? undefined : told.join('\n\n');
}

function functionOf(tool: Exclude<KeptTool, NamespaceTool>): Omit<FunctionTool, 'name'> {
  if (tool.type === 'custom') return asFunction(tool);
  const { description, parameters } = tool;
  return { description, parameters, strict: tool.type === 'function' && isStrict(tool) };
}

function isKept(tool: ResponseTool): tool is KeptTool {
  if (tool.type === 'tool_search') return 'execution' in tool && tool.execution === 'client';
  return tool.type === 'function' || tool.type === 'custom' || tool.type === 'namespace';
}
