#include "textflag.h"

// func At(address unsafe.Pointer)
TEXT ·At(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ address+0(FP), AX
	PREFETCHT0 (AX)
	RET
