/* The CBLAS test programs look at two variables of the reference library, which other libraries
 * lack; where the library has them, the program's take their place. */
int CBLAS_CallFromC, RowMajorStrg;
