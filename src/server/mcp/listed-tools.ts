import { isObject } from '../../../base/option-values.js';
import { jsonUnits } from '../../../models/json-units.js';
import { TOOL_LIMITS } from './tool-limits.js';
import type { ServedTool, ServedToolList } from './tool-server.js';

/** Names that every format of calls can hold, the label of the server before them included. */
const NAME = /^[\w./-]{1,63}$/;

/** Why a tool is left out. */
type Fault = 'a name that models cannot call' | 'a schema that is no object' | 'a schema that is too deep';

/**
 * Gathers the tools that a server lists, page by page. What one tool has wrong costs this tool alone; whatever else its
 * server says of it is not taken.
 */
export class ListedTools {
  readonly #wanted: ReadonlySet<string> | null;
  readonly #tools = new Map<string, ServedTool>();
  readonly #faults = new Map<Fault, string[]>();
  #units = 0;

  /** @param wanted names of the only tools that matter; null: all do */
  constructor(wanted: ReadonlySet<string> | null) {
    this.#wanted = wanted;
  }

  /** True where no further page can add anything. */
  get isComplete(): boolean {
    return this.#wanted !== null && [...this.#wanted].every((name) => this.#tools.has(name));
  }

  /** What they are too many or too long for, as a clause; null: they are not. */
  get excess(): string | null {
    if (this.#tools.size > TOOL_LIMITS.tools) return `it lists more than ${TOOL_LIMITS.tools} tools`;
    if (this.#units > TOOL_LIMITS.toolUnits)
      return `its tools are longer together than ${TOOL_LIMITS.toolUnits} characters`;
    return null;
  }

  add(page: readonly unknown[]): void {
    for (const one of page) {
      if (this.excess !== null) return;
      this.#addOne(one);
    }
  }

  list(server: string): ServedToolList {
    const warnings = [...this.#faults].map(([fault, names]) => {
      const some = names.slice(0, 3).map((name) => `'${name}'`);
      const more = names.length > some.length ? ` and ${names.length - some.length} more` : '';
      return `Tools of the MCP server '${server}' were left out for ${fault}: ${some.join(', ')}${more}.`;
    });
    return { tools: [...this.#tools.values()], warnings };
  }

  #addOne(one: unknown): void {
    if (!isObject(one) || typeof one.name !== 'string') return;
    const { name, description, inputSchema, annotations } = one;
    if (this.#wanted !== null && !this.#wanted.has(name)) return;
    // The first of a name is kept: a later one may not replace it.
    if (this.#tools.has(name)) return;
    const fault = faultOf(name, inputSchema);
    if (fault !== null) {
      const names = this.#faults.get(fault) ?? [];
      this.#faults.set(fault, [...names, name.slice(0, 64)]);
      return;
    }
    const tool: ServedTool = {
      name,
      description:
        typeof description === 'string' ? description.slice(0, TOOL_LIMITS.descriptionLength) : undefined,
      inputSchema: inputSchema as Record<string, unknown>,
      annotations: isObject(annotations) && !isDeep(annotations) ? annotations : null,
    };
    this.#units += jsonUnits(tool, TOOL_LIMITS.toolUnits);
    this.#tools.set(name, tool);
  }
}

function faultOf(name: string, schema: unknown): Fault | null {
  if (!NAME.test(name)) return 'a name that models cannot call';
  if (!isObject(schema)) return 'a schema that is no object';
  return isDeep(schema) ? 'a schema that is too deep' : null;
}

/** True for a value with more levels than schemas may have. */
function isDeep(value: object): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth < TOOL_LIMITS.schemaLevels; depth++) {
    level = level.flatMap((one) =>
      typeof one === 'object' && one !== null ? (Object.values(one) as unknown[]) : [],
    );
    if (level.length === 0) return false;
  }
  return true;
}
