import { CHANNEL_BEGIN, CHANNEL_END, THOUGHT } from '../reasoning/reasoning-marks.js';
import { CallTextParser } from './call-text-parser.js';
import { Gemma4Object } from './gemma4-value.js';
import { MarkerFinder } from './marker-finder.js';
import { typesOfParameter } from './parameter-types.js';
import type { FunctionTool } from './types.js';

export const GEMMA4_BEGIN = '<|tool_call>';
export const GEMMA4_END = '<tool_call|>';
/** Text between the begin of a call and the name of the function. */
export const GEMMA4_HEAD = 'call:';
/** Begin of a result, which the caller and not the model writes: the answer ends in front of it. */
const RESPONSE_BEGIN = '<|tool_response>';

const NAME = /^[\w.:/-]{1,128}$/;

/**
 * Calls as Gemma 4 writes them, and thoughts after the beginning of an answer:
 *
 *   Let me look.<|tool_call>call:f{city:<|"|>Paris<|"|>,days:3}<tool_call|><|tool_call>call:g{}<tool_call|>
 *   Yes.<|channel>thought\n<channel|>
 *
 * The text is a call once the arguments have a name, or are over.
 */
export class Gemma4Parser extends CallTextParser {
  readonly #tools: ReadonlyMap<string, FunctionTool>;
  readonly #outside: MarkerFinder;
  readonly #end = new MarkerFinder([GEMMA4_END]);
  readonly #behind = new MarkerFinder([GEMMA4_END, GEMMA4_BEGIN, RESPONSE_BEGIN]);
  readonly #channel = new MarkerFinder([CHANNEL_END]);
  #state: 'text' | 'head' | 'arguments' | 'broken' | 'behind' | 'channel' | 'over' = 'text';
  /** Text that may be part of a call, and is content if there is none. */
  #raw = '';
  #name = '';
  #object: Gemma4Object | null = null;
  /** JSON of the arguments, as long as they have not been said. */
  #json = '';
  #isSaid = false;
  #hasCalls = false;
  /** Thoughts so far, as long as they may be the name of the channel. */
  #label: string | null = null;
  #space = '';
  #breaks = 0;

  /** @param tools functions that may be called; none: calls are content */
  constructor(tools: readonly FunctionTool[]) {
    super();
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    const calls = tools.length === 0 ? [] : [GEMMA4_BEGIN, RESPONSE_BEGIN];
    this.#outside = new MarkerFinder([...calls, CHANNEL_BEGIN, CHANNEL_END]);
  }

  get breaks(): number {
    return this.#breaks;
  }

  protected step(character: string): void {
    switch (this.#state) {
      case 'text':
        this.#inText(character);
        break;
      case 'head':
        this.#inHead(character);
        break;
      case 'arguments':
        this.#inArguments(character);
        break;
      case 'broken': {
        const { text, marker } = this.#end.step(character);
        this.args(text);
        if (marker !== null) this.#state = 'text';
        break;
      }
      case 'behind':
        this.#inBehind(character);
        break;
      case 'channel': {
        const { text, marker } = this.#channel.step(character);
        this.#think(text);
        if (marker !== null) this.#endThoughts();
        break;
      }
      case 'over':
    }
  }

  #inText(character: string): void {
    const { text, marker } = this.#outside.step(character);
    this.content(text);
    if (marker === GEMMA4_BEGIN) this.#open();
    if (marker === RESPONSE_BEGIN) {
      if (this.#hasCalls) this.#state = 'over';
      else this.content(marker);
    }
    if (marker !== CHANNEL_BEGIN && marker !== CHANNEL_END) return;
    this.flushSpace();
    this.#breaks++;
    // An end without a begin is no text of the answer.
    if (marker === CHANNEL_END) return;
    this.#state = 'channel';
    this.#label = '';
    this.#space = '';
  }

  #open(): void {
    this.#state = 'head';
    this.#raw = GEMMA4_BEGIN;
    this.#name = '';
  }

  #inHead(character: string): void {
    if (character === '{' && this.#name.startsWith(GEMMA4_HEAD)) {
      const name = this.#name.slice(GEMMA4_HEAD.length);
      if (NAME.test(name)) {
        this.#begin(name);
        return;
      }
    }
    this.#raw += character;
    this.#name += character;
    const isHead = this.#name.startsWith(GEMMA4_HEAD)
      ? NAME.test(this.#name.slice(GEMMA4_HEAD.length)) || this.#name === GEMMA4_HEAD
      : GEMMA4_HEAD.startsWith(this.#name);
    if (!isHead) this.#fail();
  }

  #begin(name: string): void {
    const tool = this.#tools.get(name);
    this.#name = name;
    this.#object = new Gemma4Object((key) => (tool === undefined ? null : typesOfParameter(tool, key)));
    this.#json = '';
    this.#isSaid = false;
    this.#state = 'arguments';
    this.#inArguments('{');
  }

  #inArguments(character: string): void {
    const { scan, json, rest = '' } = this.#object!.step(character);
    if (!this.#isSaid) {
      this.#raw += character;
      if (scan === 'invalid') {
        this.#fail();
        return;
      }
      this.#json += json;
      if (scan === 'more' && !this.#object!.isBegun) return;
      this.#raw = '';
      this.#isSaid = true;
      this.#hasCalls = true;
      this.call(this.#name);
      this.args(this.#json);
    } else this.args(json);
    if (scan === 'last') this.#state = 'behind';
    if (scan !== 'invalid') return;
    this.#state = 'broken';
    this.read(rest);
  }

  /** Reads to the end of a call, which a model may forget. */
  #inBehind(character: string): void {
    const { text, marker } = this.#behind.step(character);
    if (marker === GEMMA4_END) this.#state = 'text';
    if (marker === GEMMA4_BEGIN) this.#open();
    if (marker === RESPONSE_BEGIN) this.#state = 'over';
    if (marker !== null || text.trim() === '') return;
    this.#state = 'text';
    this.read(text + this.#behind.flush());
  }

  #fail(): void {
    const text = this.#raw;
    this.#raw = '';
    this.#state = 'text';
    this.readAgain(text);
  }

  /** Takes thoughts, without the name of their channel and white space around them. */
  #think(text: string): void {
    let thought = text;
    if (this.#label !== null) {
      this.#label += text;
      if (THOUGHT.startsWith(this.#label)) return;
      thought = this.#label.startsWith(THOUGHT) ? this.#label.slice(THOUGHT.length) : this.#label;
      thought = thought.trimStart();
      if (thought === '') {
        this.#label = THOUGHT;
        return;
      }
      this.#label = null;
    }
    const end = thought.trimEnd().length;
    if (end > 0) {
      this.reasoning(this.#space + thought.slice(0, end));
      this.#space = '';
    }
    this.#space += thought.slice(end);
  }

  #endThoughts(): void {
    this.#state = 'text';
    this.#label = null;
  }

  protected get undecided(): number {
    if (this.#state === 'text') return this.#outside.held;
    if (this.#state === 'behind') return this.#behind.held;
    return this.#state === 'head' || this.#state === 'arguments' ? this.#raw.length : 0;
  }

  protected finish(): void {
    if (this.#state === 'text') this.content(this.#outside.flush());
    if (this.#state === 'head' || this.#state === 'arguments') this.content(this.#raw);
    if (this.#state === 'broken') this.args(this.#end.flush());
    if (this.#state === 'channel') this.#think(this.#channel.flush());
    // A cut marker after a call is no text of the answer.
  }
}
