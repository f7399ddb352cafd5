#include "textflag.h"

// func At(address unsafe.Pointer)
TEXT ·At(SB), NOSPLIT|NOFRAME, $0-8
	MOVD address+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET
