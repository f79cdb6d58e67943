import { createContext } from 'svelte';
import type { Params } from './match';

const [get, set] = createContext<() => Params>();

export const setParams = set;

/** Returns the path's parameters, such as the key of a flag, as a function. Call it when a component starts. */
export const useParams = get;
