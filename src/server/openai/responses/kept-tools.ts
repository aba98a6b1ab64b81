import { type Warn, warnOfTypes } from '../../warnings.js';
import type { CustomTool, ResponseFunction, ResponseRequest, ResponseTool } from '../schemas/responses.js';

/** A tool that a model can be told of. */
export type KeptTool = ResponseFunction | CustomTool;

type Tools = Pick<ResponseRequest, 'tools'>;

/** The tools of a request that a model can be told of. */
export function keptTools({ tools = [] }: Tools): KeptTool[] {
  return tools.filter(isKept);
}

/** Indices in the request's list of the tools that are kept. */
export function keptPlaces({ tools = [] }: Tools): number[] {
  return [...tools.keys()].filter((place) => isKept(tools[place]!));
}

/** Tells of tools that are left out, since only OpenAI's own servers know their types. */
export function warnOfOthers({ tools = [] }: Tools, warn: Warn): void {
  warnOfTypes(
    tools.filter((tool) => !isKept(tool)).map(({ type }) => type),
    warn,
  );
}

function isKept(tool: ResponseTool): tool is KeptTool {
  return tool.type === 'function' || tool.type === 'custom';
}
