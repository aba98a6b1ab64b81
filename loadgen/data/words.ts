import type { Random } from '../random.js';

/**
 * Common words that are, with the space before them, one token in the usual vocabularies (GPT-2's, GPT-4's, Llama's,
 * Qwen's, SmolLM's). In other vocabularies calibration finds their mean number of tokens.
 */
export const WORDS = (
  'about after again against air all also always and animal another answer any area around ask away back bad bank base be ' +
  'became because before began behind being best better between big bird black blue board boat body book both box boy bring ' +
  'brother brought build building business but buy by call came can car care carry case cause center certain change check ' +
  'child children church city class clear close cold color come common company could country course cut dark day deep did ' +
  'different do doctor does dog done door down draw drive dry during each early earth east easy eat eight either else end ' +
  'energy enough even evening ever every eye face fact fall family far farm fast father feel feet few field figure fill final ' +
  'find fine fire first fish five fly follow food foot for force form found four free friend from front full game garden gave ' +
  'get girl give glass go gold gone good got government great green ground group grow had half hand happen happy hard has have ' +
  'he head hear heart heat heavy held help her here high him his hold home horse hot hour house how human hundred idea if in ' +
  'inside interest into island it job just keep kept key kind king knew know land language large last late later laugh law lay ' +
  'lead learn least leave left less let letter life light like line list little live local long look lost low machine made main ' +
  'make man many map mark market matter may mean meet men middle might mile mind minute miss money month moon more morning most ' +
  'mother mountain mouth move much music must name nation near need never new next night north nothing now number object of off ' +
  'office often oil old on once one only open or order other our out over own page paper part pass past pay people person picture ' +
  'piece place plan plant play point poor power press problem public pull put question quick rain ran reach read ready real record ' +
  'red rest rich ride right river road rock room round rule run said same save saw say school science sea season second see seem ' +
  'self sell send set seven several shall she ship short should show side sign simple since sing sister sit six size sky sleep slow ' +
  'small snow so social some son song soon sound south space speak spring stand star start state stay step still stone stood stop ' +
  'story street strong study such summer sun sure system table take talk teach team tell ten test than that the their them then ' +
  'there these they thing think this those thought thousand three through time to today together told too took top total toward ' +
  'town trade train tree true try turn two type under until up us use very voice wait walk wall want war warm was watch water way ' +
  'we week well went were west what wheel when where which while white who whole why wide will wind window winter with without ' +
  'woman wonder wood word work world would write year yes yet you young your'
).split(' ');

/** Draws a number of words, with a space before each but the first. */
export function drawWords(count: number, random: Random): string {
  const words = new Array<string>(count);
  for (let i = 0; i < count; i++) words[i] = WORDS[random.below(WORDS.length)]!;
  return words.join(' ');
}

/** Number of prompt tokens by words, as probes found it: tokens = fixed + perWord * words. */
export interface TokenScale {
  fixed: number;
  perWord: number;
}

/** Scale where nothing is known. */
export const PLAIN_SCALE: TokenScale = { fixed: 0, perWord: 1 };

/** Number of words for a prompt of `tokens` tokens; at least one. */
export function wordsFor(tokens: number, { fixed, perWord }: TokenScale): number {
  return Math.max(1, Math.round((tokens - fixed) / perWord));
}
