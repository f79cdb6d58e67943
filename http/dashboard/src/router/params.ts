import { createContext } from 'svelte';
import type { Params } from './match';

const [get, set] = createContext<() => Params>();

export const setParams = set;

/** What the path names, such as the key of a flag. Call it at a component's start; what it returns is read where it is needed. */
export const useParams = get;
